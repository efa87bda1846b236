"""Tables of counts as latent variables: how a model sees them, and the step that updates cells."""
