"""Own rules for deploy/kubernetes and deploy/compose, which no schema knows. `.ci/check-deploy` runs them."""
