package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// absent is the state of a register that holds nothing. Values that are put are not negative.
const absent int64 = -1

// state is what a register holds, and what operations of unknown outcome may have done to it (byKey).
type state struct {
	held int64
	// Puts that may have come before a deletion, and deletions that may have come before what finds nothing.
	puts, deletions int
}

// emptied is the state once nothing was found: by what came before, or by a deletion of unknown outcome.
func (s state) emptied() (bool, state) {
	if s.held == absent {
		return true, s
	}
	s.held = absent
	s.deletions--
	return s.deletions >= 0, s
}

// deleted is the state once a deletion has found something: what came before, or a put of unknown outcome.
func (s state) deleted() (bool, state) {
	if s.held != absent {
		s.held = absent
		return true, s
	}
	s.puts--
	return s.puts >= 0, s
}

// register is one event under its id: put replaces it or creates it, delete removes it, get shows it.
var register = porcupine.Model{
	Init: func() interface{} { return state{held: absent} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		now, one := before.(state), input.(operation)
		switch {
		case one.isCredit && one.Op == "put":
			now.puts++
			return true, now
		case one.isCredit:
			now.deletions++
			return true, now
		case one.Op == "put":
			now.held = int64(*one.Value)
			return true, now
		case one.Op == "get" && one.Value != nil:
			return now.held == int64(*one.Value), now
		case one.Op == "get", !*one.Found:
			return step(now.emptied())
		default:
			return step(now.deleted())
		}
	},
	DescribeOperation: func(input, _ interface{}) string {
		one := input.(operation)
		switch {
		case one.Op == "put":
			return fmt.Sprintf("put %d%s", *one.Value, doubt(one))
		case one.Op == "delete" && one.Outcome == "ok" && !*one.Found:
			return "delete: nothing there"
		case one.Op == "delete":
			return "delete" + doubt(one)
		default:
			return "get: " + show(value(one))
		}
	},
	DescribeState: func(of interface{}) string { return show(of.(state).held) },
}

func step(possible bool, next state) (bool, interface{}) { return possible, next }

// value is what a get has shown.
func value(one operation) int64 {
	if one.Value == nil {
		return absent
	}
	return int64(*one.Value)
}

func show(held int64) string {
	if held == absent {
		return "nothing"
	}
	return fmt.Sprint(held)
}

func doubt(one operation) string {
	if one.Outcome == "unknown" {
		return " (unknown)"
	}
	return ""
}
