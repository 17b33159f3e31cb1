"""What programs do with their words, from profiles in data files. `docs/programs.md` says how to add one."""
