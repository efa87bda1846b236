# Example 3: a regression from nine noisy sums of clamped records (y, x1, x2).

here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
source(file.path(here, "_run.R"))

released <- read_data("released")
scale <- read_data("scale")
n <- read_data("n")

model <- dapper::new_privacy(
  posterior_f = function(dmat, theta) {
    x <- cbind(1, dmat[, 2:3])
    root <- chol(crossprod(x) / 2 + diag(3) / 4)
    mean <- backsolve(root, forwardsolve(t(root), crossprod(x, dmat[, 1]) / 2))
    c(mean + backsolve(root, rnorm(3)))
  },
  latent_f = function(theta) {
    x <- cbind(rnorm(n, 0.9), rnorm(n, -1.17))
    cbind(theta[1] + x %*% theta[2:3] + rnorm(n, 0, sqrt(2)), x)
  },
  mechanism_f = function(sdp, sx) -sum(abs(sdp - sx)) / scale,
  statistic_f = function(xi, sdp, i) {
    z <- pmin(pmax(xi / 10, -1), 1)
    y <- z[1]
    x <- z[2:3]
    c(y, x * y, y^2, x[1], x[1]^2, x[2], x[1] * x[2], x[2]^2)
  },
  npar = 3
)
run_dapper(model, released, rep(0, 3))
