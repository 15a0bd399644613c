// The arithmetic of the demo page's bench: speed over time, medians, axis steps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axisSteps, median, ratesOverTime } from '../../www/rates.js';

const steady = (count, everyMs) => Array.from({ length: count }, (_, i) => 500 + i * everyMs);

test('a_steady_stream_has_its_rate_at_every_time', () => {
  const points = ratesOverTime(steady(101, 20), 101);
  assert.ok(points.length > 10);
  for (const { ms, rate } of points) {
    assert.ok(ms >= 500 && ms <= 2500);
    assert.ok(Math.abs(rate - 50) <= 5, `${rate} tokens/s at ${ms} ms`);
  }
});

test('a_stream_that_slows_down_shows_it', () => {
  const fast = steady(100, 10);
  const slow = Array.from({ length: 100 }, (_, i) => fast.at(-1) + (i + 1) * 40);
  const points = ratesOverTime([...fast, ...slow], 200);
  assert.ok(points[0].rate > 80 && points.at(-1).rate < 35, `${points[0].rate} then ${points.at(-1).rate}`);
});

test('pieces_that_come_in_bursts_do_not_look_like_jumps', () => {
  const times = Array.from({ length: 160 }, (_, i) => Math.floor(i / 4) * 40);
  const rates = ratesOverTime(times, 160).map(({ rate }) => rate);
  assert.ok(Math.max(...rates) < 2 * Math.min(...rates), `${Math.min(...rates)} to ${Math.max(...rates)}`);
});

test('a_piece_of_several_tokens_counts_as_several', () => {
  const [point] = ratesOverTime(steady(50, 20), 100);
  assert.ok(Math.abs(point.rate - 100) <= 10);
});

test('a_short_answer_is_a_line_too', () => {
  const points = ratesOverTime(steady(20, 6), 20);
  assert.ok(points.length >= 3);
  assert.ok(points.at(-1).ms - points[0].ms >= 50, JSON.stringify(points));
  for (const { rate } of points) assert.ok(Math.abs(rate - 1000 / 6) <= 17, `${rate} tokens/s`);
});

test('fewer_than_two_times_have_no_rate', () => {
  for (const times of [[], [3], [3, 3]]) assert.deepEqual(ratesOverTime(times, times.length), []);
});

test('the_median_is_the_middle', () => {
  assert.equal(median([]), 0);
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test('axis_steps_are_round_and_reach_the_largest_value', () => {
  for (const most of [0.003, 0.9, 1, 7, 63, 100, 4215]) {
    for (const count of [3, 5, 8]) {
      const { step, end } = axisSteps(most, count);
      assert.ok(end >= most * (1 - 1e-9) && end / step <= count + 1e-9, `${most} in ${count}: ${step}, ${end}`);
      assert.match(String(Number((step / 10 ** Math.floor(Math.log10(step))).toFixed(6))), /^(1|2|2\.5|5|10)$/);
    }
  }
});
