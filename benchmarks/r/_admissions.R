# Example 2 with a given log-density of the noise: a table of four counts.

run_admissions <- function(log_density) {
  released <- read_data("released")
  n <- read_data("n")
  model <- dapper::new_privacy(
    posterior_f = function(dmat, theta) draw_dirichlet(1 + tabulate(dmat[, 1], 4)),
    latent_f = function(theta) matrix(sample.int(4, n, replace = TRUE, prob = theta)),
    mechanism_f = log_density,
    statistic_f = function(xi, sdp, i) {
      x <- numeric(4)
      x[xi] <- 1
      x
    },
    npar = 4
  )
  run_dapper(model, released, rep(1, 4) / 4)
}
