# What the scripts share: data from CSV files, a timed run of dapper, draws to a CSV file.
#
# Called as: Rscript SCRIPT.R FOLDER ITERATIONS WARMUP

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]

read_data <- function(name) {
  scan(file.path(folder, paste0(name, ".csv")), quiet = TRUE)
}

# From a Dirichlet distribution.
draw_dirichlet <- function(alpha) {
  x <- rgamma(length(alpha), alpha)
  x / sum(x)
}

run_dapper <- function(model, released, start) {
  seconds <- system.time(
    result <- dapper::dapper_sample(
      model, sdp = released, init_par = start, seed = 1,
      niter = as.integer(arguments[2]), warmup = as.integer(arguments[3]), chains = 1
    )
  )[["user.self"]]
  draws <- unclass(posterior::as_draws_matrix(result$chain))
  write.csv(draws, file.path(folder, "draws.csv"), row.names = FALSE)
  cat(seconds, file = file.path(folder, "seconds.csv"))
}
