"""Every threshold of the adaptive loop, in one place.

They trade overhead against speed of adaptation and against thrashing; none of them can change a
row of any answer.
"""

from __future__ import annotations

# -- profiling of filters ----------------------------------------------------------------------
PROFILE_RATE = 0.01
"""Share of the rows on which all predicates are evaluated."""
INDEPENDENT_RATE = 0.005
"""The same for `independent`, which needs fewer."""
PROFILE_WINDOW = 1000
"""Number of profiled rows that were dropped and are kept in the window."""
SWEEP_WINDOW = 500
"""Profiled rows after which `sweep` turns to the next predicate."""
EVIDENCE = 50
"""Profiled rows below which no ratio is judged."""
SWEEP_EVIDENCE = 150
"""The same for `sweep` and `local-swaps`, which restart counting after each change."""

# -- slices --------------------------------------------------------------------------------------
SLICE_SECONDS = 0.02
"""Target duration of filtering a slice, within the two bounds below."""
SLICE_ROWS = 2_048
"""The shortest slice."""
LONGEST_SLICE_ROWS = 262_144

SLICE_MEMORY = 0.75
"""Weight of earlier slices in the time per row; the last slice has the rest."""

# -- thrash control ------------------------------------------------------------------------------
ALPHA = 0.9
"""A predicate moves forward only if the ratio of the one before it is below this part of its
own."""
PIPELINE_GAIN = 0.05
"""Leaves of a pipeline are swapped only for a gain of at least this part of the cost per row by the
profile: a new order drops the caches of its pipeline."""
REVERT_MARGIN = 1.2
"""A switch is reverted if a row then costs this many times as much as before."""
REVERT_ROWS = 4_096
"""Rows to be processed under the new plan before it is judged."""
METER_SLICES = 2
"""Slices over which the cost before a switch is measured."""
BAN_SLICES = 256
"""Slices for which a reverted order is not tried again."""
TRANSIENT_EPOCHS = 3
"""A plan replaced by the one before it within this many epochs was a transient."""
TRANSIENT_ALPHA = 0.9
"""Each transient makes `ALPHA` smaller by this factor,"""
LEAST_ALPHA = 0.5
"""but never smaller than this."""

# -- costs ---------------------------------------------------------------------------------------
COST_CALLS = 16
"""Calls of a predicate over which its cost per row is estimated."""
COST_QUANTILE = 0.25
"""The estimate is this quantile of them."""
LOOKUPS_ALIKE = 16
"""Lookups in windows are of one kind; that they cost alike weighs as much as so many calls."""
CALL_SECONDS = 17e-6
"""Fixed cost of a call, however few rows it has; not charged to the rows."""
LEAST_COST = 2e-10
"""Lower bound of a predicate's cost, so that ratios stay finite."""

# -- auto ----------------------------------------------------------------------------------------
PROFILE_BUDGET = 0.02
"""The part of filter time that profiling may take while nothing changes."""
DRIFT = 0.08
"""A survival rate that differs this much from its value when the order was chosen is drift,"""
DRIFT_SIGMAS = 4
"""and more than so many standard deviations of a slice of that size."""
BUDGET_MEMORY = 0.98
"""Decay per slice of the time spent in all and on profiling."""
DRIFT_ROWS = 256
"""Rows that must reach a position before its survival rate is compared."""
BURST_ROWS = 192
"""At the start, and after drift, slices of so many rows are profiled as a whole,"""
BURST_SLICES = 2
"""so many of them, or as many rows in shorter ones."""
DRIFT_CALM = 1.5
"""Drift that leads to no switch raises the threshold for the next by this factor."""
REFILL_ROWS = 300
"""Profiled rows below which the window is too small to leave predicates out of the profile."""
SETTLED_ROWS = 4_096
"""Rows after a switch over which survival rates are recorded for comparison."""
STABLE_SLICES = 64
"""Slices without a switch after which `auto` looks for something cheaper than A-Greedy."""
HOPELESS = 0.5
"""A predicate whose ratio is below this part of every incumbent's is left out of the profile for
the next `STABLE_SLICES` slices."""
MANY_PREDICATES = 6
"""From this number of predicates on A-Greedy's profile is so costly that `auto` prefers `sweep` in
quiet times."""

# -- plan log ------------------------------------------------------------------------------------
LOG_LENGTH = 1_000
"""Switches remembered per query while it runs,"""
LOG_KEPT = 16
"""and so many of them, and of what was considered, after a restart."""
CONSIDERED_LATELY = 16
"""What is compared again with the same outcome within so many entries is not noted again."""
KNOWN_PLANS = 64
"""Regions of statistics whose best plan is remembered per conjunction."""
REGION_STEPS = 5
"""A drop rate falls into one of so many regions."""
HINDSIGHT_EPOCHS = 512
"""Epochs whose samples are kept to compute the best static plan in hindsight."""
HINDSIGHT_ROWS = 128
"""Profiled rows kept of each."""

# -- profiler ------------------------------------------------------------------------------------
STATISTIC_EPOCHS = 32
"""Epochs over which a statistic is averaged."""
CHANGE = 0.05
"""A probability that has moved by more than this, and more than chance explains, is announced."""

# -- caches of joins -----------------------------------------------------------------------------
CACHE_WINDOW = 10
"""Observations over which a statistic of a pipeline or a cache is averaged, and so many it needs
before caches are chosen by it."""
CACHE_CHANGE = 0.2
"""Caches are chosen anew only if a benefit or an upkeep has changed by more than this part of its
value at the last choice."""
CACHE_INTERVAL = 2.0
"""Interval (in the unit of `tick`) after which unused caches are profiled again;"""
CACHE_EPOCHS = 64
"""while queries run, in epochs;"""
CACHE_FIRST_EPOCHS = 4
"""the first interval, which then doubles each time;"""
RATE_CHANGE, RATE_EPOCHS, RATE_ROWS = 2.0, 2, 64
"""at once, if the rate of a stream changes by this factor, and by more than so many rows, or a join
takes this many times as long, for so many epochs in a row."""
URGENT_EPOCHS, URGENT_PAUSE = 3, 2
"""Then, and at first, profiling has no time limit for so many epochs, and not again before so many
have passed;"""
JOIN_BUDGET = 0.01
"""otherwise it may take this part of a join's time."""
COLD_EPOCHS = 4
"""Misses of a cache in use are averaged over so many epochs, and used after as many: at first it is
empty."""
TRIAL_EPOCHS, TRIAL_STEADY = 2, 1.5
"""A change of caches is judged by the best of so many epochs after it (when the cache is warm) and
before it, if no epoch before it took more than this many times the best."""
CACHE_QUOTA = 6
"""Global caches are considered only as long as there are fewer candidates than this."""
EXHAUSTIVE_CANDIDATES = 20
"""Up to so many candidates the best set of caches is searched for; beyond, it is approximated."""
NEW_KEY_BITS = 1 << 17
"""Bits by which the keys of a cache's look-ups are remembered."""
JOIN_SHARE, JOIN_ROWS = 0.01, 64
"""This share of the rows of each pipeline, or at least so many, are profiled in an epoch while
caches are to be chosen,"""
SAMPLE_OBSERVATIONS = 5
"""and count as so many observations."""
USED_EPOCHS = 8
"""While nothing is to be chosen, pipelines with caches are profiled every so many epochs,"""
USED_SHARE, USED_ROWS = 0.01, 32
"""with so many rows."""
AUTO_GAIN = 0.8
"""Unless caches are requested, they are used only if a join then costs at most this part of what it
costs without them, by estimate;"""
CACHED_GAIN = 0.95
"""where they are requested, this part: a smaller gain is less than the cost of switching."""
CACHE_BYTES = 64 << 20
"""Memory for the caches of one join together."""
CACHE_PAGE = 64 << 10
"""Size of the pages in which it is granted."""
ROOM_TO_GROW = 1.5
"""A cache requests memory for this many times what it holds."""
LEAST_BUCKETS = 1 << 10
"""Minimum number of buckets of a cache,"""
BUCKETS_PER_KEY = 4
"""and buckets per expected key."""
