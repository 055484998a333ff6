// Package diskuse counts what an attempt has on the disk, by walking its folders: project quotas need root and an
// option of the mount. It belongs to step 6 of a job's way and must never import a handler.
package diskuse
