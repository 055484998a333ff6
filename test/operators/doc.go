// Package operators tests what the operators of independent sites type, and nothing else: commands of the built program
// at machines that are network namespaces of their own, with files carried from one to the other. It walks all eight
// steps of a job's way between two sites that trust only each other's keys.
//
// The test needs the build tag operators, root and iproute2: make test-operators.
package operators
