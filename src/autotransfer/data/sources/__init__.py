"""Where data sets come from: files, folders, MNE, MOABB, and recordings as published."""
