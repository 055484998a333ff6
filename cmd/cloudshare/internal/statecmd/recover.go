package statecmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/replica"
)

// recovery is what the command shows of a stopped broker's data.
type recovery struct {
	Site       string          `json:"site"`
	Federation string          `json:"federation"`
	Epoch      uint64          `json:"epoch"`
	LastTerm   uint64          `json:"last_term"`
	LastIndex  uint64          `json:"last_index"`
	Entry      uint64          `json:"entry"`
	StateHash  string          `json:"state_hash"`
	LogTime    string          `json:"log_time"` // since the foundation
	Members    []recoverMember `json:"members"`
	Unfinished bool            `json:"unfinished,omitempty"` // an interrupted recovery
}

type recoverMember struct {
	Site    string `json:"site"`
	Peer    string `json:"peer"`
	Voter   bool   `json:"voter"`
	Answers bool   `json:"answers"`
}

// recovering is a run of `recover`.
type recovering struct {
	*cli.App
	dir    string // of the broker
	follow string
	hold   time.Duration
	yes    bool

	who *credentials.Credentials // of the site; nil: there are no data
}

func recoverCommand(a *cli.App) *cobra.Command {
	r := recovering{App: a}
	var path string
	cmd := &cobra.Command{
		Use: "recover", Short: "Go on after the quorum is lost for good", Args: cobra.NoArgs,
		Long: `Go on after more than half of the voters are lost for good. It works on the
data of stopped brokers, and changes nothing without --yes.

1. Stop the brokers that are left, and make sure that the lost ones never come
   back with their old data.
2. On each, run it without --yes, and compare. The newest data have the
   greatest last term and, of those, the greatest last index.
3. There run it with --yes, and start that broker. It is the only voter of a
   new epoch, and its only elector until others come back. It assigns nothing until all that ran before must have ended: a
   lease and the margin, or --hold if tasks had stop bounds longer than that.
4. On each of the others run it with --follow, the peer address of that broker,
   and --yes, and start them. Their own jobs that nobody else knew come with
   them. Sites whose data are lost come back on empty data by cloudshare invite --again.

What only the lost voters knew is gone: the newest jobs may be unknown, and the
newest ends forgotten, so that tasks run again. If it is interrupted, run it
again.`,
		Example: `  cloudshare recover --data-dir /var/lib/cloudshare
  cloudshare recover --data-dir /var/lib/cloudshare --yes
  cloudshare recover --data-dir /var/lib/cloudshare --follow 10.0.0.1:7701 --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := recoverDir(path, r.dir, cmd)
			if err != nil {
				return err
			}
			r.dir = dir
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "config", "", "take data_dir from a broker's YAML `FILE`")
	f.StringVar(&r.dir, "data-dir", "", "the stopped broker's data directory")
	f.StringVar(&r.follow, "follow", "", "join the epoch of the recovered broker with this peer address, `HOST:PORT`")
	cli.DurationVar(f, &r.hold, "hold", 0, "assign nothing for so long (at least a lease and the margin)")
	f.BoolVar(&r.yes, "yes", false, "do it")
	return cmd
}

// recoverDir returns the data directory by flag or configuration. It is refused if its
// state once differed from the others', as its broker would refuse it.
func recoverDir(path, dir string, cmd *cobra.Command) (string, error) {
	if (path == "") == (dir == "") {
		return "", cli.Usage("name the stopped broker's data: either --data-dir or --config")
	}
	if path != "" {
		cfg, err := config.Load(path, cmd.Flags(), os.Environ)
		if err != nil {
			return "", err
		}
		dir = cfg.DataDir
	}
	if err := compare.Refuse(filepath.Join(dir, config.DivergedDir)); err != nil {
		return "", cli.WithExit(cli.ExitRefused, err)
	}
	return dir, nil
}

func (r *recovering) run(ctx context.Context) error {
	if limit := command.MaxTimeoutMs * time.Millisecond; r.hold < 0 || r.hold > limit {
		return cli.Usage("--hold %s: must be from 0 to %s", r.hold, limit)
	}
	if err := r.identify(); err != nil {
		return refusal(err)
	}
	if r.follow != "" {
		return r.runFollow(ctx)
	}
	found, err := r.inspect(ctx)
	if err != nil {
		return refusal(err)
	}
	if r.yes {
		if err := raftlog.Recover(ctx, r.offline(func() coord.Machine { return replica.NewReplica() }),
			r.hold.Milliseconds()); err != nil {
			return refusal(err)
		}
	}
	if err := r.Show(found, func(w io.Writer) { showRecovery(w, found) }); err != nil {
		return err
	}
	if !r.yes {
		r.Note("Nothing was changed. Compare the other survivors' last term, then last index; with the newest data: cloudshare recover --data-dir %s --yes", r.dir)
		return nil
	}
	r.Note("Recovered: %s is the only voter of a new epoch, and decides alone who is a member until other electors are back. Start its broker, then on each other survivor: cloudshare recover --data-dir DIR --follow %s --yes",
		found.Site, peerOf(found))
	return nil
}

func (r *recovering) runFollow(ctx context.Context) error {
	if err := config.CheckDialed("--follow", []string{r.follow}); err != nil {
		return err
	}
	if !r.yes {
		r.Note("Nothing was changed. With --yes, %s drops its copy of the log and joins the epoch of %s; its journal and its tasks stay", r.dir, r.follow)
		return nil
	}
	o := r.offline(nil)
	err := newcomer(&o, r.dir)
	if err == nil {
		err = raftlog.Follow(ctx, o, r.follow)
	}
	if err == nil {
		err = r.trustFollowed(ctx)
	}
	if err != nil {
		return refusal(err)
	}
	r.Note("The copy of the log is dropped. Start the broker: it joins through %s", r.follow)
	return nil
}

// identify finds who the site is: others answer only its key.
func (r *recovering) identify() error {
	on, err := config.LatestState(r.dir)
	if err != nil || on.Backend == "" {
		return err // the backend says so
	}
	r.who, err = credentials.Of(r.dir)
	return err
}

// trustFollowed takes over who the members are by the word of the broker that is followed: it has made itself an
// elector, which nobody else may know.
func (r *recovering) trustFollowed(ctx context.Context) error {
	if r.who == nil {
		return nil
	}
	now := r.who.Trust.Roster()
	asking := enroll.Asking{Dialer: &relay.Dialer{Net: r.who.Net, Site: r.site()}}
	roster, err := asking.Roster(ctx, relay.Peer{Addr: r.follow}, now.Federation)
	if err != nil {
		return fmt.Errorf("ask %s who the members are: %w: run it again", r.follow, err)
	}
	return r.who.Trust.Reset(roster)
}

// site returns the name under which the site's key is known.
func (r *recovering) site() string {
	on, _ := config.LatestState(r.dir) // read before
	return on.Site
}

// newcomer says who follows, if the site has been on another backend only.
func newcomer(o *raftlog.Offline, dir string) error {
	r, z, err := config.DataStates(dir)
	if err != nil || r.Backend != "" || z.Backend == "" {
		return err
	}
	o.As = &raftlog.Newcomer{Site: z.Site, Node: z.Node, Federation: z.Federation, Epoch: z.Epoch, Lineage: z.Lineage}
	return nil
}

// offline returns the data, and the network by which others are asked about it.
func (r *recovering) offline(machine func() coord.Machine) raftlog.Offline {
	o := raftlog.Offline{Dir: filepath.Join(r.dir, config.RaftDir), Machine: machine, Logger: newMoveLog(r.App)}
	if r.who != nil {
		o.Net = r.who.Net
	}
	return o
}

// inspect replays the data into a replica.
func (r *recovering) inspect(ctx context.Context) (recovery, error) {
	replica := replica.NewReplica()
	v, err := raftlog.Inspect(ctx, r.offline(func() coord.Machine { return replica }))
	if err != nil {
		return recovery{}, err
	}
	_, hash := replica.Hash()
	out := recovery{
		Site: v.Site, Federation: uuid.UUID(v.Federation).String(), Epoch: v.Epoch, LastTerm: v.LastTerm,
		LastIndex: v.LastIndex,
		Entry:     v.Entry, StateHash: hex.EncodeToString(hash[:]), Members: []recoverMember{},
		Unfinished: v.Unfinished,
	}
	replica.View(func(s *fsm.State) { out.LogTime = (time.Duration(s.Time()) * time.Millisecond).String() })
	for _, p := range v.Peers {
		out.Members = append(out.Members, recoverMember{Site: p.Site, Peer: p.Addr, Voter: p.Voter, Answers: p.Answers})
	}
	return out, nil
}

func showRecovery(w io.Writer, r recovery) {
	cli.Row(w, "site", r.Site)
	cli.Row(w, "federation", r.Federation)
	cli.Row(w, "epoch", r.Epoch)
	cli.Row(w, "last term", r.LastTerm)
	cli.Row(w, "last index", r.LastIndex)
	cli.Row(w, "entry", r.Entry)
	cli.Row(w, "state hash", r.StateHash)
	cli.Row(w, "log time", r.LogTime)
	for _, m := range r.Members {
		word := "no voter"
		if m.Voter {
			word = "voter"
		}
		switch {
		case m.Site == r.Site:
			word += ", this one"
		case m.Answers:
			word += ", answers"
		}
		cli.Row(w, "member "+m.Site, m.Peer+", "+word)
	}
}

func peerOf(r recovery) string {
	for _, m := range r.Members {
		if m.Site == r.Site {
			return m.Peer
		}
	}
	return "HOST:PORT"
}

// refusal gives what the data or the other brokers forbid its exit code.
func refusal(err error) error {
	switch {
	case errors.Is(err, raftlog.ErrNoData):
		return cli.WithExit(cli.ExitUsage, err)
	case errors.Is(err, raftlog.ErrLocked), errors.Is(err, raftlog.ErrNoLoss), errors.Is(err, raftlog.ErrEpoch),
		errors.Is(err, coord.ErrForeign):
		return cli.WithExit(cli.ExitRefused, err)
	}
	return err
}
