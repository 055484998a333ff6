package node

import "fmt"

// Disk is the file system that a broker writes to. A full one stops the broker,
// so before that it takes no new jobs, offers nothing and starts nothing; what
// runs goes on.
type Disk struct {
	Path    string // on the file system, "" = not watched
	MinFree int64  // bytes; with less free nothing new is taken or started; 0 = no limit
	// Free measures the bytes that are free at a path; nil asks the system.
	Free func(path string) (int64, error)
}

// Validate names the first thing that is wrong.
func (d Disk) Validate() error {
	if d.MinFree < 0 {
		return fmt.Errorf("min_free is %d bytes: must not be negative", d.MinFree)
	}
	return nil
}
