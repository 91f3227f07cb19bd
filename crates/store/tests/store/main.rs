//! The store from outside: through its public face, over disks that crash, tear, fill up and rot.

mod basics;
mod concurrency;
mod damage;
mod faults;
mod model;
mod schedules;
mod world;
