"""Trees of latent counts: messages up, exact draws and marginals down."""
