"""Row sources: blocks of rows, or rows in any order, from arrays, frames and files."""
