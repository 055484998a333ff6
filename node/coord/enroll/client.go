package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
)

// ErrRefused reports that the federation does not admit the site, and will not however often it is asked.
var ErrRefused = errors.New("not admitted")

// ErrOldKey reports that a site's key was replaced before, more often than the one who asks for the next one knows.
var ErrOldKey = errors.New("the key was replaced meanwhile")

// maxReplaced bounds how often a key may have been replaced for Replace to find it out.
const maxReplaced = 64

// Replace has a site's key replaced by the member that an invitation names, for one who has no other way to the
// federation: nothing is left but its recovery key. sign makes the command for a generation, which Replace finds
// by trying: who is no member is not told.
func (a *Asking) Replace(ctx context.Context, v *invitation.Invitation, sign func(generation uint64) *command.Rekey) (
	truststore.Roster, error,
) {
	// Making the recovery key was the first replacement.
	for generation := uint64(1); ; generation++ {
		r, why, err := a.askAll(ctx, v, sign(generation))
		switch {
		case err == nil && why == "":
			return r, nil
		case err == nil:
			return r, fmt.Errorf("replace the key of %s: not now: %s", v.Site, why)
		case !errors.Is(err, ErrOldKey) || generation == maxReplaced:
			return r, err
		}
	}
}

// Asking is how a site asks.
type Asking struct {
	Dialer *relay.Dialer // its Net shows the site's key
	// Every is the pause between two questions; 0 = 2 s.
	Every time.Duration
	// Waiting is told what keeps the site from being admitted, whenever that changes. May be nil.
	Waiting func(why string)
}

// Admission returns the command by which the holder of a key uses an invitation.
func Admission(v *invitation.Invitation, key identity.Key) *command.Admit {
	invited := identity.FromSeed(v.Seed)
	c := &command.Admit{Invitation: signature.Key(invited.Public()), Site: v.Site, Key: signature.Key(key.Public())}
	signed := c.Signed(v.Federation)
	copy(c.ByInvitation[:], invited.Sign(command.SignedAdmission, signed...))
	copy(c.ByKey[:], key.Sign(command.SignedAdmission, signed...))
	return c
}

// Join asks for admission by an invitation until it is given, refused, or ctx ends. It returns who the members are, as
// the member says that has invited: nobody else has its key.
func (a *Asking) Join(ctx context.Context, v *invitation.Invitation, key identity.Key) (truststore.Roster, error) {
	body := Admission(v, key)
	said := ""
	for {
		r, why, err := a.askAll(ctx, v, body)
		switch {
		case err == nil && why == "":
			return r, nil
		case errors.Is(err, ErrRefused):
			return r, err
		case err != nil:
			why = err.Error()
		}
		if why != said && a.Waiting != nil {
			a.Waiting(why)
		}
		said = why
		select {
		case <-time.After(a.every()):
		case <-ctx.Done():
			return r, fmt.Errorf("join: %w (last: %s)", context.Cause(ctx), why)
		}
	}
}

func (a *Asking) every() time.Duration {
	if a.Every > 0 {
		return a.Every
	}
	return 2 * time.Second
}

// askAll asks at the addresses in turn, until one answers. why is set while it is not decided.
func (a *Asking) askAll(ctx context.Context, v *invitation.Invitation, body command.Body) (
	r truststore.Roster, why string, err error,
) {
	for _, addr := range v.Addresses {
		var got answer
		to := relay.Peer{Addr: addr, Node: v.Inviter}
		if got, r, err = a.ask(ctx, to, v.Federation, body); err != nil {
			continue
		}
		switch got.Verdict {
		case Admitted:
			if r.Federation != v.Federation || !slices.ContainsFunc(r.Members, isSite(v.Site)) {
				return r, "", fmt.Errorf("%w: %s says so, and its list of members does not", ErrRefused, addr)
			}
			return r, "", nil
		case Refused:
			if got.Code == command.OldKey {
				return r, "", fmt.Errorf("%w: %w: %s", ErrRefused, ErrOldKey, line(got.Why))
			}
			return r, "", fmt.Errorf("%w: %s", ErrRefused, line(got.Why))
		case Pending:
			return r, "waiting for the approval of " + strings.Join(got.Waiting, ", "), nil
		case Later:
		}
		return r, line(got.Why), nil
	}
	return r, "", fmt.Errorf("the member that has invited is not reached: %w", err)
}

// dialWait is how long one address may take until it has greeted: there may be others.
const dialWait = 5 * time.Second

// ask puts one question.
func (a *Asking) ask(ctx context.Context, to relay.Peer, federation [16]byte, body command.Body) (
	answer, truststore.Roster, error,
) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	dialing, stop := context.WithTimeout(ctx, dialWait)
	conn, err := a.Dialer.Dial(dialing, to, relay.KindEnroll, [16]byte{})
	stop()
	if err != nil {
		return answer{}, truststore.Roster{}, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	q, err := encodeQuestion(federation, a.Dialer.Site, body)
	if err == nil {
		_, err = conn.Write(relay.EndFrame(append(relay.Frame(nil), q...)))
	}
	var b []byte
	if err == nil {
		b, err = relay.ReadFrame(conn, nil, maxAnswer)
	}
	if err != nil {
		return answer{}, truststore.Roster{}, fmt.Errorf("ask %s: %w", to.Addr, err)
	}
	return parseAnswer(b)
}

func isSite(site string) func(truststore.Entry) bool {
	return func(m truststore.Entry) bool { return m.Site == site }
}

// line keeps what comes from outside in one line, of a length that can be read.
func line(s string) string { return command.Clip(s) }
