// A server component that imports the package, around a client component that runs it.

import { EDGE_ERROR_CODES, HanzoEdge } from '@hanzo/edge';
import Answers from './answers.jsx';

export default function Page() {
  return <main><p id="server">{typeof HanzoEdge.init} {EDGE_ERROR_CODES.length}</p><Answers /></main>;
}
