# Example 2, with the noise's log-density written out: faster than the package's own.

here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
source(file.path(here, "_run.R"))
source(file.path(here, "_admissions.R"))

sigma <- read_data("sigma")
run_admissions(function(sdp, sx) -sum((sdp - sx)^2) / (2 * sigma^2))
