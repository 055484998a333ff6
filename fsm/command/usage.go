package command

// Usage reports runs outside the log, in order: it is applied only if Batch is one more than the site's
// last. MaxUsageRows bounds the rows.
type Usage struct {
	Batch uint64
	Rows  []UsageRow
}

// UsageRow is one ended home run. Its start s = entry time − AgoMs − RunMs; its end e = s + RunMs, but
// not after the entry; its request r = s − WaitMs. s and r are not below 0.
type UsageRow struct {
	Job                  uint64
	Task                 uint32
	Need                 Resources
	AgoMs, RunMs, WaitMs int64
}

// Validate checks the bounds of every row.
func (b *Usage) Validate() error {
	if err := within("rows", int64(len(b.Rows)), 0, MaxUsageRows); err != nil {
		return err
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if err := firstError(
			within("task", int64(r.Task), 0, MaxCount-1),
			CheckResources("", r.Need),
			within("ago_ms", r.AgoMs, 0, MaxTimeoutMs),
			within("run_ms", r.RunMs, 0, MaxTimeoutMs),
			within("wait_ms", r.WaitMs, 0, MaxTimeoutMs),
		); err != nil {
			return err
		}
	}
	return nil
}
