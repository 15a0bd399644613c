// Whether a model can be used here and what it would take, before it is downloaded.

import { isErrorData } from './errors.js';
import type { EdgeErrorCode } from './errors.js';
import { callOnce } from './opening.js';
import { checkEdgeOptions } from './options.js';
import type { Availability, EdgeOptions, Plan } from './types.js';

/** Failures that say that a model cannot be used here, rather than that the question was wrong. */
const UNAVAILABLE: readonly EdgeErrorCode[] = ['not-found', 'network', 'integrity', 'quota', 'unsupported-model', 'malformed-file', 'out-of-memory', 'limits'];

/** What loading a model would take. */
export async function plan(options: EdgeOptions): Promise<Plan> {
  checkEdgeOptions(options);
  return (await callOnce('survey', options)).plan;
}

/** Whether a model can be used. */
export async function availability(options: EdgeOptions): Promise<Availability> {
  checkEdgeOptions(options);
  try {
    const survey = await callOnce('survey', options);
    if (!survey.plan.fits) return 'unavailable';
    return ({ stored: 'available', downloading: 'downloading', missing: 'downloadable' } as const)[survey.state];
  } catch (error) {
    if (isErrorData(error) && UNAVAILABLE.includes(error.code)) return 'unavailable';
    throw error;
  }
}
