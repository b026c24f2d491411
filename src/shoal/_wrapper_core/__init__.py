"""Building blocks of the wrappers of all frontends: statistics, frame stacks, episodes, videos.

The modules do not depend on a frontend; a wrapper adapts them to its frontend's interface.
"""
