"""gramian: kernel ridge regression on data of any size."""
