"""The spawn server, a small program of its own: it starts commands, supervises them and ends what they leave.

It runs in a fresh interpreter that imports these modules and no others of the package but the sandbox's: see `server`.
"""
