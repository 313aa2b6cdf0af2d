//! Services restart under load, as in an upgrade, and no request fails.

mod balanced;
mod lone_control_plane;
mod lone_edge;
mod scene;
mod slow_page;
mod socket_activation;
