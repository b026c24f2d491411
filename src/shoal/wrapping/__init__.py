"""What the wrappers of all doors are made of: statistics, stacks of frames, episodes, videos.

Nothing here knows a door; a wrapper gives these parts the form that its users know.
"""
