package node

// Spec is a user's job (contract: POST /v1/jobs), after defaults.
type Spec struct{}
