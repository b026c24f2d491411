"""What the wrappers of all frontends are made of: statistics, stacks of frames, episodes, videos.

Nothing here knows a frontend; a wrapper gives these parts the form that its users know.
"""
