package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// knobs are what one request asks for.
type knobs struct {
	sleep    time.Duration
	cpu      time.Duration
	memoryMB int
	status   int
	chunks   int
	interval time.Duration
	size     int
	file     string
	exits    bool
	exit     int
	after    time.Duration
	timeout  time.Duration
}

func parseKnobs(query, defaults url.Values) (knobs, error) {
	p := parser{env: func(key string) string {
		if query.Has(key) {
			return query.Get(key)
		}
		return defaults.Get(key)
	}}
	k := knobs{
		sleep:    p.milliseconds("sleep"),
		cpu:      p.milliseconds("cpu"),
		memoryMB: p.number("memory", 0),
		status:   p.number("status", 200),
		chunks:   p.number("chunks", 0),
		interval: p.milliseconds("interval"),
		size:     p.number("size", 0),
		file:     p.text("file", ""),
		exits:    query.Has("exit"),
		exit:     p.number("exit", 1),
		after:    p.milliseconds("after"),
		timeout:  time.Duration(p.number("timeout", 60_000)) * time.Millisecond,
	}
	if k.status < 200 || k.status > 599 {
		p.err = errors.Join(p.err, fmt.Errorf("status: %d, expected 200 to 599", k.status))
	}
	return k, p.err
}

// parser reads values and keeps every error on the way.
type parser struct {
	env func(string) string
	err error
}

func (p *parser) text(key, absent string) string {
	if value := p.env(key); value != "" {
		return value
	}
	return absent
}

func (p *parser) number(key string, absent int) int {
	value := p.env(key)
	if value == "" {
		return absent
	}
	parsed, err := strconv.Atoi(value)
	if err != nil || parsed < 0 {
		p.err = errors.Join(p.err, fmt.Errorf("%s: %q, expected a whole number, 0 or more", key, value))
		return absent
	}
	return parsed
}

func (p *parser) milliseconds(key string) time.Duration {
	return time.Duration(p.number(key, 0)) * time.Millisecond
}
