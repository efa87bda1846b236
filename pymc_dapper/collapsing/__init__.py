"""CollapsedStep: parameters moved by NUTS with the counts summed out, and counts drawn exactly."""
