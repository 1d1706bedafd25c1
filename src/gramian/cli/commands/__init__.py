"""The commands of gramian, one file each."""
