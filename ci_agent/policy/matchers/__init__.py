"""The patterns of a rule, each kind by itself: commands, paths, hosts, tools, arguments."""
