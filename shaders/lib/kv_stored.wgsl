// A launch before this one has written the step's keys and values.
fn kv_ready(owner: bool, kv_head: u32, local: u32) {
}
