//! The memory maximum that a module declares, removed from the module and stored beside it.
//!
//! The interpreter refuses growth beyond that maximum without reporting it, and a module that then
//! traps looks like any other trap. The sandbox sees every growth and applies the maximum itself,
//! so the two cases can be distinguished.

/// Number of the memory section.
const MEMORY: u8 = 5;
const HEADER: usize = 8;

/// The module without its maximum, and the maximum in pages. A module that cannot be parsed here is
/// returned unchanged: the interpreter decides whether it is valid.
pub(crate) fn strip_memory_maximum(module: &[u8]) -> (Vec<u8>, Option<u64>) {
    split_memory_maximum(module).unwrap_or_else(|| (module.to_vec(), None))
}

fn split_memory_maximum(module: &[u8]) -> Option<(Vec<u8>, Option<u64>)> {
    let mut at = HEADER;
    while at < module.len() {
        let start = at;
        let id = module[at];
        at += 1;
        let size = usize::try_from(number(module, &mut at)?).ok()?;
        let end = at.checked_add(size).filter(|end| *end <= module.len())?;
        if id != MEMORY {
            at = end;
            continue;
        }
        // One memory with a maximum: 1, flags 1, minimum, maximum.
        let count = number(module, &mut at)?;
        let flags = number(module, &mut at)?;
        if (count, flags) != (1, 1) {
            return None;
        }
        let minimum = number(module, &mut at)?;
        let maximum = number(module, &mut at)?;
        if at != end {
            return None;
        }
        let mut body = vec![1, 0];
        put(&mut body, minimum);
        let mut out = module[..start].to_vec();
        out.push(MEMORY);
        put(&mut out, body.len() as u64);
        out.extend(body);
        out.extend(&module[end..]);
        return Some((out, Some(maximum)));
    }
    None
}

/// An unsigned LEB128 number of at most 32 bits.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}
