"""What the blend can say about itself, one question a module.

disagreement    how far do the specialists disagree here, and does that find the errors?
"""
