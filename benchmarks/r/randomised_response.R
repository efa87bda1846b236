# Example 1: two randomised answers of each applicant. The statistic is a matrix with a row per
# applicant and a column per cell; a record fills its own row.

here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
source(file.path(here, "_run.R"))

answer <- read_data("answer") + 1
keep <- read_data("keep")
n <- length(answer)
channel <- kronecker(diag(2 * keep - 1, 2) + 1 - keep, diag(2 * keep - 1, 2) + 1 - keep)
# By cell and answer: log probability of each applicant's answer in each of the cells.
log_probability <- t(log(channel)[, answer])

released <- matrix(0, n, 4)
released[cbind(seq_len(n), answer)] <- 1

model <- dapper::new_privacy(
  posterior_f = function(dmat, theta) draw_dirichlet(1 + tabulate(dmat[, 1], 4)),
  latent_f = function(theta) matrix(sample.int(4, n, replace = TRUE, prob = theta)),
  mechanism_f = function(sdp, sx) sum(sx * log_probability),
  statistic_f = function(xi, sdp, i) {
    x <- matrix(0, n, 4)
    x[i, xi] <- 1
    x
  },
  npar = 4
)
run_dapper(model, released, rep(1, 4) / 4)
