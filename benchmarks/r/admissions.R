# Example 2, with the package's own discrete Gaussian. Its mean must be a scalar.

here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
source(file.path(here, "_run.R"))
source(file.path(here, "_admissions.R"))

sigma <- read_data("sigma")
run_admissions(function(sdp, sx) sum(dapper::ddnorm(sdp - sx, 0, sigma, log = TRUE)))
