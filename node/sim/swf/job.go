// Package swf reads and writes the Standard Workload Format, version 2.2, of
// the Parallel Workloads Archive: one job a line in 18 fields, −1 for what is
// not known, and comments after ";".
//
// https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
//
// It imports the standard library only and knows nothing of brokers.
package swf

import (
	"fmt"
	"math"
	"strconv"
)

// Fields is how many fields a job has.
const Fields = 18

// Unknown is the value of a field that the log does not know.
const Unknown = -1

// Job is one line. Times are seconds and may have fractions; Submit and Wait
// count from the log's start. Unknown (−1) is kept as it is.
type Job struct {
	Number       int64
	Submit       float64
	Wait         float64
	Run          float64
	Procs        int64   // allocated
	CPU          float64 // average CPU time used, seconds
	Memory       float64 // average, KiB a processor
	ReqProcs     int64
	ReqTime      float64
	ReqMemory    float64
	Status       int64
	User         int64
	Group        int64
	Executable   int64
	Queue        int64
	Partition    int64
	Preceding    int64
	ThinkSeconds float64
}

// Width returns the job's processors: those allocated, else those requested; ≤ 0 if
// neither is known.
func (j *Job) Width() int64 {
	if j.Procs > 0 {
		return j.Procs
	}
	return j.ReqProcs
}

// fieldNames are the archive's, for messages.
var fieldNames = [Fields]string{
	"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory",
	"requested processors", "requested time", "requested memory", "status", "user", "group", "executable", "queue",
	"partition", "preceding job", "think time",
}

// maxValue bounds every number: it is exact as a float64, and far above a
// century of seconds.
const maxValue = 1e15

// set parses field i (from 0).
func (j *Job) set(i int, text string) error {
	whole, frac := j.field(i)
	if whole == nil {
		v, err := parseReal(text)
		if err != nil {
			return fmt.Errorf("field %d (%s) is %.40q: %w", i+1, fieldNames[i], text, err)
		}
		*frac = v
		return nil
	}
	v, err := parseWhole(text)
	if err != nil {
		return fmt.Errorf("field %d (%s) is %.40q: %w", i+1, fieldNames[i], text, err)
	}
	*whole = v
	return nil
}

// field returns where field i (from 0) is kept: a whole number or a real one.
func (j *Job) field(i int) (whole *int64, frac *float64) {
	switch i {
	case 0:
		return &j.Number, nil
	case 1:
		return nil, &j.Submit
	case 2:
		return nil, &j.Wait
	case 3:
		return nil, &j.Run
	case 4:
		return &j.Procs, nil
	case 5:
		return nil, &j.CPU
	case 6:
		return nil, &j.Memory
	case 7:
		return &j.ReqProcs, nil
	case 8:
		return nil, &j.ReqTime
	case 9:
		return nil, &j.ReqMemory
	case 10:
		return &j.Status, nil
	case 11:
		return &j.User, nil
	case 12:
		return &j.Group, nil
	case 13:
		return &j.Executable, nil
	case 14:
		return &j.Queue, nil
	case 15:
		return &j.Partition, nil
	case 16:
		return &j.Preceding, nil
	default:
		return nil, &j.ThinkSeconds
	}
}

// parseWhole reads an integer; "3.0" is one, "3.5" is not.
func parseWhole(text string) (int64, error) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil && v > -maxValue && v < maxValue {
		return v, nil
	}
	v, err := parseReal(text)
	if err == nil && v != math.Trunc(v) {
		err = errNotWhole
	}
	return int64(v), err
}

func parseReal(text string) (float64, error) {
	if len(text) < 16 {
		if v, err := strconv.Atoi(text); err == nil {
			return float64(v), nil
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) >= maxValue {
		return 0, errNotNumber
	}
	return v, nil
}
