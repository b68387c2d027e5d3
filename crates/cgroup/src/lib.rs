//! Control groups, v1, v2 and hybrid: limits (write), statistics (read), sampling.
