package transfer

import (
	"context"
	"errors"
	"fmt"
)

// exchange has requests answered on a link, and keeps or closes it. It returns how many parts were answered.
func (p *pull) exchange(ctx context.Context, l *link) (brought int, err error) {
	undo := l.interruptBy(ctx)
	flying := make(chan batch, window)
	go p.ask(ctx, l, flying)
	for b := range flying {
		n := 0
		if err == nil {
			n, err = p.receive(l, b)
			brought += n
		}
		if err != nil {
			l.interrupt()
			p.queue.putBack(b.numbers[n:])
		}
	}
	if err == nil && l.in.Buffered() > 0 {
		err = fmt.Errorf("%w: %d bytes that were not asked for", ErrPeer, l.in.Buffered())
	}
	if !undo() || err != nil {
		_ = l.Close()
		return brought, err
	}
	p.from.keep(l)
	return brought, nil
}

// ask sends requests, each told to flying before.
func (p *pull) ask(ctx context.Context, l *link, flying chan<- batch) {
	defer close(flying)
	for n := 0; n < turn || !p.from.crowded(); n++ {
		b := p.queue.take()
		if len(b.parts) == 0 {
			return
		}
		flying <- b
		if n%turn == turn-1 {
			p.grow(ctx)
		}
		if l.ask(p.index, b.parts) != nil {
			l.interrupt() // so that its answer fails
			return
		}
	}
}

// receive reads the answers to a request and delivers them. It returns how many parts are done with.
func (p *pull) receive(l *link, b batch) (done int, err error) {
	for i := range b.parts {
		if err = p.receivePart(l, b.numbers[i], &b.parts[i]); err != nil {
			return i, err
		}
	}
	return len(b.parts), nil
}

func (p *pull) receivePart(l *link, number int, q *Request) error {
	content, free := takeBuffer(q.Length)
	defer free()
	refusal, err := l.readPart(content, p.meter.arrived)
	switch {
	case errors.Is(err, ErrPeer):
		return fmt.Errorf("blob %x: %w", q.Hash, err)
	case err != nil:
		return fmt.Errorf("%w: it went in the middle of a transfer: %w", ErrUnreachable, err)
	}
	p.meter.arrived(max(0, leastCharge-int(q.Length))) // many small ones are no stall
	p.meter.keeping.Add(1)
	defer p.meter.keeping.Add(-1)
	if refusal != Granted {
		return p.deliver(number, nil, &RefusedError{Refusal: refusal, Hash: q.Hash})
	}
	return p.deliver(number, content, nil)
}
