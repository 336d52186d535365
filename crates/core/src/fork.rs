//! [`Owned`]: a value that belongs to one process, identified by its process id.
//!
//! A forked child has a copy of its parent's memory, but no threads. It must not use or drop a
//! connection, a runtime or a lock of its parent. Dropping one would affect the parent's file locks
//! and sockets, or wait for threads that do not exist.

use std::mem;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The process that this code runs in.
    pub fn current() -> Self {
        Self(number())
    }

    /// False in a child that was forked later.
    pub fn is_current(self) -> bool {
        self.0 == number()
    }
}

/// A value of one process. A forked child may store its own. The inherited value is leaked.
#[derive(Debug)]
pub struct Owned<T> {
    first: Link<T>,
}

/// A list of values, one for each process; each process is the child of the previous one.
type Link<T> = OnceLock<Box<ProcessSlot<T>>>;

#[derive(Debug)]
struct ProcessSlot<T> {
    process: Process,
    value: OnceLock<T>,
    next: Link<T>,
}

impl<T> Owned<T> {
    /// Creates it without a value.
    pub const fn empty() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Creates it with a value for this process.
    pub fn new(value: T) -> Self {
        let slot =
            ProcessSlot { process: Process::current(), value: value.into(), next: OnceLock::new() };
        Self { first: Box::new(slot).into() }
    }

    /// Returns the value of this process.
    pub fn get(&self) -> Option<&T> {
        let mut link = &self.first;
        while let Some(slot) = link.get() {
            if slot.process.is_current() {
                return slot.value.get();
            }
            link = &slot.next;
        }
        None
    }

    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.slot_mut()?.value.get_mut()
    }

    /// Returns the value of this process, or calls `make`. A child never waits for its parent.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let (process, mut link) = (Process::current(), &self.first);
        loop {
            let slot = link.get_or_init(|| {
                Box::new(ProcessSlot { process, value: OnceLock::new(), next: OnceLock::new() })
            });
            if slot.process == process {
                return slot.value.get_or_init(make);
            }
            link = &slot.next;
        }
    }

    /// Removes the value of this process and returns it.
    pub fn take(&mut self) -> Option<T> {
        self.slot_mut()?.value.take()
    }

    fn slot_mut(&mut self) -> Option<&mut ProcessSlot<T>> {
        let mut link = &mut self.first;
        while let Some(slot) = link.get_mut() {
            if slot.process.is_current() {
                return Some(slot);
            }
            link = &mut slot.next;
        }
        None
    }
}

impl<T> Default for Owned<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T> Drop for ProcessSlot<T> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            mem::forget(self.value.take());
        }
    }
}

#[cfg(not(test))]
fn number() -> u32 {
    std::process::id()
}

#[cfg(test)]
use pretended::number;
#[cfg(test)]
pub(crate) use pretended::pretend;

/// Simulates a forked child in a test: the thread gets another process id.
#[cfg(test)]
mod pretended {
    use std::cell::Cell;

    thread_local! {
        static CHILD: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn number() -> u32 {
        std::process::id() ^ (CHILD.get() << 24)
    }

    /// Gives this thread the process id of a child until the guard is dropped.
    pub(crate) struct Child(u32);

    pub(crate) fn pretend(child: u32) -> Child {
        Child(CHILD.replace(child))
    }

    impl Drop for Child {
        fn drop(&mut self) {
            CHILD.set(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_child_has_its_own_value() {
        let owned = Owned::new(1);
        let process = Process::current();
        let child = pretend(1);
        assert!(owned.get().is_none() && !process.is_current());
        assert_eq!((*owned.get_or_init(|| 2), *owned.get_or_init(|| 3)), (2, 2));
        let grandchild = pretend(2);
        assert_eq!(*owned.get_or_init(|| 4), 4);
        drop(grandchild);
        assert_eq!(owned.get(), Some(&2));
        drop(child);
        assert!(owned.get() == Some(&1) && process.is_current());
    }

    #[test]
    fn an_inherited_value_is_neither_taken_nor_dropped() {
        let counted = Arc::new(());
        let mut owned = Owned::new(Arc::clone(&counted));
        let child = pretend(1);
        assert!(owned.take().is_none() && owned.get_mut().is_none());
        drop(Arc::clone(owned.get_or_init(|| Arc::clone(&counted))));
        assert_eq!(Arc::strong_count(&counted), 3);
        drop(owned);
        assert_eq!(Arc::strong_count(&counted), 2, "the child's own value was dropped");
        drop(child);
    }
}
