'use client';
// Asks in the browser with each of the options in the page's address.

import { useEffect, useState } from 'react';
import { ask } from '../ask.js';

export default function Answers() {
  const [text, setText] = useState('');
  useEffect(() => {
    let isLeft = false;
    async function main() {
      const outcomes = [];
      for (const options of JSON.parse(new URLSearchParams(location.search).get('runs') ?? '[{}]')) outcomes.push(await ask(options));
      if (isLeft) return;
      setText(outcomes.map((outcome) => outcome.text ?? outcome.error.message).join('\n'));
      globalThis.outcomes = outcomes;
    }
    main();
    return () => { isLeft = true; };
  }, []);
  return <pre>{text}</pre>;
}
