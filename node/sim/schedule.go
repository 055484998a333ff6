package sim

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/cloudshare/cloudshare/node/sim/swf"
)

// StartLog writes one line per task, as they started: the run's event log.
func StartLog(dst io.Writer, c *Case, o *Outcome) error {
	w := csv.NewWriter(dst)
	_ = w.Write([]string{"start", "end", "site", "owner", "job", "index", "width", "release", "wait", "background"}) // an error stays for Error
	for _, i := range o.Order {
		t := &c.Tasks[i]
		_ = w.Write([]string{
			num64(o.Start[i]), num64(o.Start[i] + t.Run), SiteName(o.Site[i]), SiteName(t.Site), num64(t.Job),
			strconv.Itoa(int(t.Index)),
			num64(t.Width), num64(t.Release), num64(o.Start[i] - t.Release), strconv.FormatBool(t.Background),
		})
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("write start log: %w", err)
	}
	return nil
}

func num64(v int64) string { return strconv.FormatInt(v, 10) }

// Schedule writes the run as a log of its own: a line per task in the order of
// the case, the wait as played, the owner as the group and the executor as the
// partition (both from 1). The job's number in its log is the executable.
func Schedule(dst io.Writer, c *Case, o *Outcome, header ...string) error {
	w := swf.NewWriter(dst, append([]string{"; Version: 2.2", "; Computer: simulated by CloudShare"}, header...)...)
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if err := w.Write(&swf.Job{
			Number: int64(i + 1), Submit: float64(t.Release), Wait: float64(o.Start[i] - t.Release),
			Run:   float64(t.Run),
			Procs: t.Width, CPU: swf.Unknown, Memory: swf.Unknown, ReqProcs: t.Width, ReqTime: swf.Unknown,
			ReqMemory: swf.Unknown,
			Status:    1, User: swf.Unknown, Group: int64(t.Site + 1), Executable: t.Job, Queue: swf.Unknown,
			Partition: int64(o.Site[i] + 1), Preceding: swf.Unknown, ThinkSeconds: swf.Unknown,
		}); err != nil {
			return err
		}
	}
	return w.Flush()
}
