// Package carry moves the files of tasks between a handler's machine and its pods: those that a task finds when it
// begins, and those that it has left. Step 6 of a job's way.
//
// Both go as one stream of frames ([List], [Records]) over TLS, on the connections that [Listen] tells from others: the
// handler shows the key that the pod was told, and the pod a token that is its attempt's own. Who is cut off goes on at
// the byte where the other end stands. The package knows folders and streams, neither handlers nor Kubernetes.
package carry
