"""docs/stability.md: what is public stays, and files of earlier versions are read."""
