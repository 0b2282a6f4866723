"""`python -m softlearning` is the command `softlearning`."""

from softlearning.cli import main

main(prog_name="softlearning")
