"""Tests whether features help to predict targets of rows that were held out."""
