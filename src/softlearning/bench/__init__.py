"""The paper's benchmark, run for real and audited.

datasets      37 tables, nine real and twenty-eight reconstructed
generators    the functions behind the reconstructed ones
calibrate     search their free parameters; show the paper's columns against ours
paper         the numbers that the paper prints
methods       what is compared, as rows
results       one tidy csv: written a line at a time, read whole
run           list the cells, run each in a process of its own, skip what is there
significance  ranks and tests, from arrays
figures       the paper's figures, from the table
claims        every checkable statement of the paper beside what was measured
report        one page of it all
"""
