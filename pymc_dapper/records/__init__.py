"""Records as latent variables: how a model sees them, and the step that updates one by one."""
