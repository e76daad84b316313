//! Walking a whole file.
