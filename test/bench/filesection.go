package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	largeBytes = 1 << 30
	smallBytes = 10 << 10
	smallFiles = 10_000
	fileRounds = 3
)

// fileLoad is what a task takes.
type fileLoad struct {
	name  string
	files int
	size  int // of each
}

func (l fileLoad) bytes() int64 { return int64(l.files) * int64(l.size) }

// measureFiles has a task at another site take files, beside what copies the same bytes over TLS in the same run; and
// 1000 tasks there with a small input and a small output, beside tasks without.
func measureFiles(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startSites(ctx, env, "files", siteCount, coresPerSite, "CLOUDSHARE_DATA_LEND_MAX=64Gi")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	for _, l := range []fileLoad{
		{"1 file of 1 GiB", 1, pick(env, largeBytes, 64<<20)},
		{"10,000 files of 10 KiB", pick(env, smallFiles, 1000), smallBytes},
	} {
		if err = l.measure(ctx, env, t, fed); err != nil {
			return fmt.Errorf("move %s: %w", l.name, err)
		}
	}
	return measureFileTasks(ctx, env, t, fed)
}

// measure moves files that nobody has seen before, round by round, beside bare copies of as many.
func (l fileLoad) measure(ctx context.Context, env environment, t *table, fed *testbed.Federation) error {
	var took, bare sample
	var used time.Duration
	home, there := fed.Sites[0], fed.Sites[1]
	empty := testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{there.Name}}}
	for round := range pick(env, fileRounds, 1) {
		input, err := l.send(ctx, home, round)
		if err != nil {
			return err
		}
		without, err := timeJob(ctx, home, empty)
		if err != nil {
			return err
		}
		full := empty
		full.Inputs = []testbed.Input{input}
		was, err := brokerTimeOf(fed)
		if err != nil {
			return err
		}
		with, err := timeJob(ctx, home, full)
		if err != nil {
			return err
		}
		now, err := brokerTimeOf(fed)
		if err != nil {
			return err
		}
		used += now - was
		took = append(took, with-without)
		copied, err := bareCopy(ctx, env, l)
		if err != nil {
			return err
		}
		bare = append(bare, copied)
	}
	rate := func(s sample) float64 { return float64(l.bytes()) / 1e3 / s.quantile(0.5) }
	gib := used.Seconds() / float64(len(took)) / (float64(l.bytes()) / (1 << 30))
	t.add(figure{
		name: "to a task at another site, " + l.name, unit: "MB/s", measured: rate(took), limit: rate(bare),
		aim: aim{minRatio: 0.7},
		note: fmt.Sprintf("until it runs; limit: over one TLS connection, hashed as it comes, and copied to where the task "+
			"would find it; the brokers' processor time %.1f s a GiB", gib),
	})
	return nil
}

// timeJob runs one job.
func timeJob(ctx context.Context, s *testbed.Site, spec testbed.Spec) (time.Duration, error) {
	began := time.Now()
	err := untilEnded(ctx, s, func() ([]string, error) {
		a, err := s.Submit(ctx, spec)
		return []string{a.ID}, err
	})
	return time.Since(began), err
}

// random returns the bytes of a file that no round before had.
func (l fileLoad) random(round, file int) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(round), byte(l.files), byte(l.files >> 8), byte(file), byte(file >> 8)})
}

// send has a site keep the files, and returns how a job names them.
func (l fileLoad) send(ctx context.Context, s *testbed.Site, round int) (testbed.Input, error) {
	if l.files == 1 {
		sum, err := l.hash(round)
		if err != nil {
			return testbed.Input{}, err
		}
		content := io.LimitReader(l.random(round, 0), l.bytes())
		return testbed.Input{Path: "in", SHA256: sum}, s.Upload(ctx, sum, l.bytes(), content)
	}
	d := newDirectory()
	for i := range l.files {
		content := make([]byte, l.size)
		_, _ = l.random(round, i).Read(content) // never fails
		if err := d.add(ctx, s, fmt.Sprintf("%05d", i), content); err != nil {
			return testbed.Input{}, err
		}
	}
	sum, err := d.send(ctx, s)
	return testbed.Input{Path: "in", Manifest: sum}, err
}

func (l fileLoad) hash(round int) (string, error) {
	h := sha256.New()
	_, err := io.CopyN(h, l.random(round, 0), l.bytes())
	return hex.EncodeToString(h.Sum(nil)), err
}

// measureFileTasks runs tasks with a small input and a small output, and without.
func measureFileTasks(ctx context.Context, env environment, t *table, fed *testbed.Federation) error {
	home := fed.Sites[0]
	content := []byte("a small input\n")
	blob := files.BlobOf(content)
	if err := home.PutBlob(ctx, blob.Hash.String(), content); err != nil {
		return err
	}
	n := pick(env, shortTasks, 100)
	without := testbed.Spec{
		// Its environment has the task's number: no output is like another one.
		Command: []string{"/bin/cp", "/proc/self/environ", "out.txt"}, Count: n, Sites: &testbed.Where{Not: []string{home.Name}},
	}
	with := without
	with.Inputs = []testbed.Input{{Path: "in.txt", SHA256: blob.Hash.String()}}
	with.Outputs = &testbed.Outputs{Paths: []string{"out.txt"}, Max: "1Mi"}
	var rates [2]sample
	for range pick(env, fileRounds, 1) {
		for i, spec := range []testbed.Spec{with, without} {
			took, err := timeJob(ctx, home, spec)
			if err != nil {
				return fmt.Errorf("run %d tasks: %w", n, err)
			}
			rates[i] = append(rates[i], took)
		}
	}
	rate := func(s sample) float64 { return float64(n) * 1000 / s.quantile(0.5) }
	t.add(figure{
		name: fmt.Sprintf("%d tasks at other sites, each with a small input and output", n), unit: "tasks/s",
		measured: rate(rates[0]), limit: rate(rates[1]), aim: aim{minRatio: 0.6}, note: "limit: the same without files",
	})
	return nil
}
