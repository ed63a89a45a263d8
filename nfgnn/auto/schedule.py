"""How a search divides its budget among its steps."""

FIRST_SHARE = 0.3
"""Share of the time after which the first training ends."""
FIRST_LONGEST = 0.05
FIRST_SECONDS = 10.0
"""The first training also ends after this share of the time, but not before so many seconds."""
FIRST_ROUND_SHARE = 0.4
FIRST_ROUND_END = 0.5
"""Share of the time that the time slices of the whole portfolio take together, and at most."""
PORTFOLIO_SHARE = 0.85
"""Share of the time after which the portfolio ends."""
REPEATED_PORTFOLIO_SHARE = 0.55
"""The same where a repeated validation follows."""
REPEAT_SHARE = 0.7
"""Share of the budget after which the repeated validation ends."""
SHORT_SECONDS = 120.0
SHORT_REPEAT_SHARE = 0.9
"""The same for time limits below two minutes."""
LONGEST_SHARE = 0.3
"""Share of the time after which a training ends that has no time slice."""
LEAST_SLICE = 0.3
"""Seconds of the shortest time slice."""
SLICE_EPOCHS = 15
"""The shortest time slice has time for so many epochs of the first configuration."""
COSTLY_SHARE = 0.12
"""A configuration that takes more of the time is replaced by a cheaper form."""
LEAST_ENTRIES = 6
"""Number of configurations that get a time slice, however long they train."""
ABLATION_SHARE = 0.97
"""Share of the time after which trainings without edges or features end."""
ABLATION_LONGEST = 0.05
"""Share of the time that the trainings without edges take at most, and those without features."""
LEAST_SECONDS = 2.0
"""Time of the first training where no time is left for it."""
LEAST_SEARCH_SHARE = 0.08
"""Share of the time that must be left to propose new settings."""
CUT_TOLERANCE = 0.6
"""A training that was cut is not repeated if it had this share of a time slice."""
MODEL_SHARES = (0.5, 0.3, 0.2)
"""Shares of the best models in the new configurations that are tried at once."""
BATCH = 8
"""Most new configurations that are tried at once, of one model or in a search by runs."""
BATCH_SHARE = 0.1
"""Share of the time for the new configurations that are tried at once."""
LEFT_RUNS = 4
"""Number of runs that the portfolio leaves to the other steps, if there is a number of runs."""
LEAST_REPEATED = 4
"""Number of configurations that are trained on all splits, if the budget allows it."""
