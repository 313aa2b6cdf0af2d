"""Docker's engine, images from packages, and the load of the nightly part `compose`."""
