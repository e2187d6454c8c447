//! The guard: a seccomp filter and what answers its notifications.
